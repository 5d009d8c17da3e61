import os

AWS_REGION = 'us-west-2'

#
# In production:
# the queues of Amazon

# MESSAGE_QUEUE_USE_PROXY = False
# AWS_ACCESS_KEY_ID = 'AWS KEY ID'
# AWS_SECRET_ACCESS_KEY = ''AWS SECRET KEY

#
# While developing:
# an emulator, of which Kale thinks as a proxy

# It listens on this machine.
MESSAGE_QUEUE_USE_PROXY = True
MESSAGE_QUEUE_PROXY_PORT = 9324
MESSAGE_QUEUE_PROXY_HOST = os.getenv('MESSAGE_QUEUE_PROXY_HOST', '0.0.0.0')
AWS_ACCESS_KEY_ID = 'x'
AWS_SECRET_ACCESS_KEY = 'x'

QUEUE_CONFIG = 'taskworker/queue_config.yaml'

# A larger task is refused where it is published.
# In bytes,
# encoded.
SQS_TASK_SIZE_LIMIT = 256000

QUEUE_SELECTOR = 'kale.queue_selector.ReducedLottery'
