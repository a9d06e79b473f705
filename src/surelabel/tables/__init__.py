"""Tables in and out: rows of files, the columns that hold texts, scores and labels, and writers."""
