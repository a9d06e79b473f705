"""`python -m surelabel`: the command line."""

from surelabel.cli import main

if __name__ == "__main__":
    main()
