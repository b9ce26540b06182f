"""Demonstrations: episodes that a team plays, selected and written as a data set that any trainer can use."""
