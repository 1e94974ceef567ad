import { createInterface } from "node:readline";

/**
 * The counterpart of `Worker`: answers each line of JSON on standard input with one on standard output, in order. It
 * ends when its input does, which also happens if the process that started it is killed.
 */
export async function answerLines(answer: (message: unknown) => Promise<unknown>): Promise<never> {
  for await (const line of createInterface({ input: process.stdin })) {
    const reply = await attempt(answer, line);
    process.stdout.write(`${JSON.stringify(reply)}\n`);
  }
  process.exit(0);
}

async function attempt(answer: (message: unknown) => Promise<unknown>, line: string): Promise<object> {
  try {
    return { value: await answer(JSON.parse(line)) };
  } catch (error) {
    return { error: error instanceof Error ? error.message : String(error) };
  }
}
