/** Loaded by `--import` before the service: answers an IPC message with the time of a core that its main thread has used. */
process.on('message', (asked) => {
  if (asked === 'core time') process.send?.(process.threadCpuUsage())
})
// The channel to the bench must not keep a service alive that has stopped.
process.channel?.unref()
