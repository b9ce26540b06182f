"""SQL of the project as package data: the catalog's schema, its views, and saved queries."""
