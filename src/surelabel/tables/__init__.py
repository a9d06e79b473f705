"""Tables in and out: one reader for training, prediction and data sets, and one set of writers."""
