"""What is wrong with a scenario or a file that it names."""


class ScenarioError(Exception):
    """One message for a person, or several lines of them: the file, the place, what was expected and found."""
