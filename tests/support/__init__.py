"""What several tests share and no test asserts: servers, clocks, places of things."""
