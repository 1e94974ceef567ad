/** The least that a compiled program needs to answer `/readyz`: the runtime and one handler. Its argument is the port. */
Bun.serve({
  hostname: "127.0.0.1",
  port: Number(process.argv[2]),
  development: false,
  fetch: () => new Response("ready"),
});
