"""The runtime's Prometheus metrics. Labels are bounded: consumer and stream names, outcomes, never operation ids."""

from prometheus_client import Counter, Gauge, Histogram

from landbridge.runtime import names

_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 10)

loop_messages = Counter(
    names.METRIC_LOOP_MESSAGES.removesuffix("_total"),
    "Messages by what became of them: handled, duplicate, retried or dead",
    ["consumer", "outcome"],
)
loop_events = Counter(
    names.METRIC_LOOP_EVENTS.removesuffix("_total"), "Events written to the event log and published", ["consumer"]
)
loop_batch = Histogram(
    names.METRIC_LOOP_BATCH, "Messages in a batch", ["consumer"], buckets=(1, 2, 5, 10, 25, 50, 100, 250, 500, 1000)
)
loop_seconds = Histogram(
    names.METRIC_LOOP_SECONDS, "Seconds from taking a batch to its acknowledgement", ["consumer"], buckets=_SECONDS
)
consumer_lag = Gauge(names.METRIC_CONSUMER_LAG, "Messages that wait in the stream for this consumer", ["consumer"])
dead_letters = Counter(
    names.METRIC_DEAD_LETTERS.removesuffix("_total"), "Messages that no handler could take", ["consumer"]
)
outbox_events = Gauge(names.METRIC_OUTBOX_EVENTS, "Events committed and not yet confirmed as published")
outbox_age = Gauge(names.METRIC_OUTBOX_AGE, "Age of the oldest unpublished batch in seconds")
publish_seconds = Histogram(names.METRIC_PUBLISH_SECONDS, "Seconds to publish a batch", buckets=_SECONDS)
publish_retries = Counter(
    names.METRIC_PUBLISH_RETRIES.removesuffix("_total"), "Publications that had to be tried again"
)
ready = Gauge(names.METRIC_READY, "1 while this process is ready, else 0")
loop_stall = Gauge(names.METRIC_LOOP_STALL, "Longest pause of the event loop in the last minute in seconds")
http_requests = Counter(
    names.METRIC_HTTP_REQUESTS.removesuffix("_total"), "HTTP requests by route and status", ["route", "status"]
)
http_seconds = Histogram(names.METRIC_HTTP_SECONDS, "Seconds to answer a request", ["route"], buckets=_SECONDS)
