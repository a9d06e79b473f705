from table_files import any_form, the_rows, the_writer

__all__ = ["any_form", "the_rows", "the_writer"]
