import type { JsonObject } from "../../agents/index.ts";
import type { FieldError } from "../../base/errors.ts";
import { inputSchemaOf, type KeptTool } from "../tools/kept-tool.ts";
import { type ArgumentCheck, argumentCheck } from "./check.ts";

/**
 * Estimated memory for compiled schemas. A schema with many small parts takes at most about 16 times its text once
 * compiled, and every schema takes a few KB.
 */
const MOST_BYTES = 64 * 1024 * 1024;
const COMPILED_BYTES_PER_CHARACTER = 16;
const COMPILED_BYTES = 4_096;

/**
 * Checks the arguments of connectors' tools. Keeps the compiled schemas of recently called tools. Others are compiled
 * again, which takes about 30 ms at most.
 */
export class ArgumentChecks {
  readonly #mostBytes: number;
  /** In order of use, the most recent last. */
  readonly #checks = new Map<KeptTool, ArgumentCheck>();
  #bytes = 0;

  constructor(mostBytes: number = MOST_BYTES) {
    this.#mostBytes = mostBytes;
  }

  /** Number of compiled schemas kept. */
  get size(): number {
    return this.#checks.size;
  }

  /** The errors in the arguments; empty if they are valid. */
  errors(tool: KeptTool, input: JsonObject): readonly FieldError[] {
    const known = this.#checks.get(tool);
    const check = known ?? argumentCheck(() => inputSchemaOf(tool));
    if (known) this.#checks.delete(tool);
    else this.#bytes += weightOf(tool);
    this.#checks.set(tool, check);
    for (const oldest of this.#checks.keys()) {
      if (this.#bytes <= this.#mostBytes || oldest === tool) break;
      this.#checks.delete(oldest);
      this.#bytes -= weightOf(oldest);
    }
    return check(input);
  }
}

function weightOf({ inputSchemaJson }: KeptTool): number {
  return COMPILED_BYTES + COMPILED_BYTES_PER_CHARACTER * inputSchemaJson.length;
}
