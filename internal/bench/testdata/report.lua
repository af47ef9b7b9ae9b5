-- One line at the end that a program can read: counts, microseconds, bytes.
done = function(summary, latency)
  local e = summary.errors
  io.write(string.format("RESULT %d %d %d %d %d %.0f %.0f\n", summary.requests, summary.duration, summary.bytes,
    e.connect + e.read + e.write + e.timeout, e.status, latency:percentile(50), latency:percentile(99)))
end
