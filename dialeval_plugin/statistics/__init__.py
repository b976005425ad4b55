"""How far scores agree with people. Takes arrays; knows no method and no host."""
