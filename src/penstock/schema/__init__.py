"""The types of the HTTP API, used by the server, its OpenAPI document and the client."""
