"""What starts runs: the jobs, the sensors and schedules that ask for them, and their switches."""
