"""Promises about texts: groups, filing, lists of tags, what is done with a text, and texts that drift."""
