export interface ReadEvent {
  readonly id: number;
  readonly event: string;
  // biome-ignore lint/suspicious/noExplicitAny: tests read arbitrary JSON.
  readonly data: any;
}

/** Parses server-sent events as they arrive, frame by frame. Comments are skipped. */
export async function* readEvents(response: Response): AsyncGenerator<ReadEvent, void> {
  if (!response.body) throw new Error(`no body (${response.status})`);
  const decoder = new TextDecoder("utf-8", { fatal: true });
  let text = "";
  for await (const chunk of response.body) {
    text += decoder.decode(chunk, { stream: true });
    for (let end = text.indexOf("\n\n"); end >= 0; end = text.indexOf("\n\n")) {
      const event = parseFrame(text.slice(0, end));
      text = text.slice(end + 2);
      if (event) yield event;
    }
  }
  if (text !== "") throw new Error(`the stream ended inside a frame: ${JSON.stringify(text)}`);
}

/** Every event until the server ends the stream. */
export async function allEvents(response: Response): Promise<ReadEvent[]> {
  return Array.fromAsync(readEvents(response));
}

/**
 * Names in order, with each run of deltas as one, because how text is split into deltas depends on how it arrives.
 */
export function outline(events: readonly ReadEvent[]): string[] {
  const names = events.map(({ event }) => event);
  return names.filter((name, index) => name !== "output.delta" || names[index - 1] !== name);
}

function parseFrame(frame: string): ReadEvent | null {
  const fields = new Map<string, string>();
  for (const line of frame.split("\n")) {
    if (line.startsWith(":")) continue;
    const colon = line.indexOf(": ");
    const name = line.slice(0, colon);
    if (colon < 0 || fields.has(name)) throw new Error(`not a frame of ours: ${JSON.stringify(frame)}`);
    fields.set(name, line.slice(colon + 2));
  }
  if (fields.size === 0) return null;
  return {
    id: Number(fields.get("id")),
    event: fields.get("event") ?? "",
    data: JSON.parse(fields.get("data") ?? ""),
  };
}
