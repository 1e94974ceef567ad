import type { JsonObject } from "../agents/index.ts";
import {
  ConnectorError,
  type OfferedTool,
  type SourceCall,
  type ToolAnswer,
  type ToolSource,
} from "./source.ts";

/** A source whose program is loaded when it is used first: a start waits for none of them. */
export class LazySource implements ToolSource {
  readonly #load: () => Promise<ToolSource>;
  #source: Promise<ToolSource> | null = null;
  #isClosed = false;

  constructor(load: () => Promise<ToolSource>) {
    this.#load = load;
  }

  async list(signal: AbortSignal): Promise<readonly OfferedTool[]> {
    return (await this.#get()).list(signal);
  }

  async call(tool: OfferedTool, input: JsonObject, context: SourceCall): Promise<ToolAnswer> {
    return (await this.#get()).call(tool, input, context);
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    await (await this.#source)?.close();
  }

  #get(): Promise<ToolSource> {
    if (this.#isClosed) throw new ConnectorError("unavailable", "The connector was closed.");
    this.#source ??= this.#load();
    return this.#source;
  }
}
