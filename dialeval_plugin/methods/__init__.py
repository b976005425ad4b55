"""The methods, one folder each. A method never imports a host or another method."""
