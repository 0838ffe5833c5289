"""Everything with a connection, a file or a clock; never imports `pipeline_assets`."""
