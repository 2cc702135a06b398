"""What is made from the code: the command line, its man page, the errors, the schema's picture.

``python -m tools.reference [ROOT]`` writes them; `make generate` does so for the checkout, and a
test says when they are old.
"""
