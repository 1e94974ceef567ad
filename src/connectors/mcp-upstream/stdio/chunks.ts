/**
 * The chunks of a child's output. Nothing is read ahead, so a child whose output is not read has to wait. A broken pipe
 * ends the output: it means that the child has ended, which is reported elsewhere.
 */
export async function* chunksOf(output: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  try {
    yield* output;
  } catch {
    // As above.
  }
}
