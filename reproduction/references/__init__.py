"""Scripts that compute the golden values of tests with the packages of others, each in an environment that has them."""
