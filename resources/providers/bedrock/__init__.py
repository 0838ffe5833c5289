"""Amazon Bedrock: batch inference over S3 and the Converse call, through boto3."""
