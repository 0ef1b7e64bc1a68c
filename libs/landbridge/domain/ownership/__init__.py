"""Who owns a placement: pure decisions of the centre and of the environments."""
