import { createParser, type EventSourceMessage } from "eventsource-parser";

export interface ServerEvent {
  readonly id: number;
  readonly event: string;
  readonly data: unknown;
}

/** Parses the events of a `text/event-stream` body as they arrive. */
export async function* readEvents(body: ReadableStream<Uint8Array>): AsyncGenerator<ServerEvent, void> {
  const waiting: EventSourceMessage[] = [];
  const parser = createParser({ onEvent: (event) => waiting.push(event) });
  const decoder = new TextDecoder();
  for await (const chunk of body) {
    parser.feed(decoder.decode(chunk, { stream: true }));
    for (const { id, event, data } of waiting.splice(0)) {
      yield { id: Number(id), event: event ?? "message", data: JSON.parse(data) as unknown };
    }
  }
}
