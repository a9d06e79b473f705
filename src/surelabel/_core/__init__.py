"""What every room stands on: checks of inputs, files that are whole, optional extras, wording, packed label-sets."""
