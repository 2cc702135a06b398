"""``python -m harel_schema`` is the command `harel-schema`."""

from harel_schema.cli import main

if __name__ == "__main__":
    main()
