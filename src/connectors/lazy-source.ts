import type { JsonObject } from "../agents/index.ts";
import { ConnectorError, type SourceCall, type ToolAnswer, type ToolSource } from "./source.ts";
import type { KeptTool } from "./tools/kept-tool.ts";

/** A source whose code is loaded at first use, so that starting the server does not wait for it. */
export class LazySource implements ToolSource {
  readonly #load: () => Promise<ToolSource>;
  #source: Promise<ToolSource> | null = null;
  #isClosed = false;
  #omitted: string | null = null;

  constructor(load: () => Promise<ToolSource>) {
    this.#load = load;
  }

  get omitted(): string | null {
    return this.#omitted;
  }

  async list(signal: AbortSignal): Promise<readonly KeptTool[]> {
    const source = await this.#get();
    const tools = await source.list(signal);
    this.#omitted = source.omitted ?? null;
    return tools;
  }

  async call(tool: KeptTool, input: JsonObject, context: SourceCall): Promise<ToolAnswer> {
    return (await this.#get()).call(tool, input, context);
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    // A source that failed to load holds nothing open.
    const source = await this.#source?.catch(() => null);
    await source?.close();
  }

  #get(): Promise<ToolSource> {
    if (this.#isClosed) throw new ConnectorError("unavailable", "The connector was closed.");
    // After a failed load, the next call tries again.
    this.#source ??= this.#load().catch((error: unknown) => {
      this.#source = null;
      throw error;
    });
    return this.#source;
  }
}
