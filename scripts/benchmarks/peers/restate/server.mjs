/** A durable handler: Restate writes to disk that it began, what the model answered, and what it returned. */
import { serve, service } from "@restatedev/restate-sdk";

const { PORT, UPSTREAM_URL } = process.env;
const DATA = "data: {";

async function complete(prompt) {
  const response = await fetch(`${UPSTREAM_URL}/chat/completions`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({
      model: "short",
      messages: [{ role: "user", content: prompt }],
      stream: true,
      stream_options: { include_usage: true },
    }),
  });
  if (!response.ok) throw new Error(`the model answered ${response.status}`);
  const events = (await response.text()).split("\n").filter((line) => line.startsWith(DATA));
  return events
    .map((line) => JSON.parse(line.slice(DATA.length - 1)).choices[0]?.delta?.content ?? "")
    .join("");
}

const bench = service({
  name: "bench",
  handlers: { run: (context, { prompt }) => context.run("model", () => complete(prompt)) },
});
serve({ services: [bench], port: Number(PORT) });
