"""Tables and pages made from scores."""
