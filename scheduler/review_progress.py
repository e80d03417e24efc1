"""How far a review of deadlines has come (see `review`), and what the last one found."""


class Review:
    """`position` is that of the last job that was looked at; None while no review goes on."""

    def __init__(self) -> None:
        self.position: int | None = None
        self.found = 0
        self.far_ahead = 0
        """Deadlines far ahead of their schedules, when last looked."""

    def start(self) -> None:
        self.position, self.found = 0, 0

    def look_again(self) -> None:
        """Something was done about it."""
        if self.far_ahead:
            self.start()

    def finish(self) -> None:
        self.position, self.far_ahead = None, self.found
