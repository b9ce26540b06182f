"""Great Expectations suites as package data: one JSON file a data set that crosses a stage boundary."""
