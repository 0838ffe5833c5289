"""What starts runs: jobs now; schedules and sensors later."""
