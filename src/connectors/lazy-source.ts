import type { JsonObject } from "../agents/index.ts";
import type { KeptTool } from "./kept-tool.ts";
import { ConnectorError, type SourceCall, type ToolAnswer, type ToolSource } from "./source.ts";

/** A source whose program is loaded when it is used first: a start waits for none of them. */
export class LazySource implements ToolSource {
  readonly #load: () => Promise<ToolSource>;
  #source: Promise<ToolSource> | null = null;
  #isClosed = false;

  constructor(load: () => Promise<ToolSource>) {
    this.#load = load;
  }

  async list(signal: AbortSignal): Promise<readonly KeptTool[]> {
    return (await this.#get()).list(signal);
  }

  async call(tool: KeptTool, input: JsonObject, context: SourceCall): Promise<ToolAnswer> {
    return (await this.#get()).call(tool, input, context);
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    // What could not be loaded holds nothing open.
    const source = await this.#source?.catch(() => null);
    await source?.close();
  }

  #get(): Promise<ToolSource> {
    if (this.#isClosed) throw new ConnectorError("unavailable", "The connector was closed.");
    // A load that failed is tried again with the next call.
    this.#source ??= this.#load().catch((error: unknown) => {
      this.#source = null;
      throw error;
    });
    return this.#source;
  }
}
