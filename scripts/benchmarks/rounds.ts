/**
 * Measures contenders in turn, A B A B …, so that what disturbs the machine disturbs all of them alike and a ratio can be
 * taken round by round. Before that each has a warm-up round, which does not count: the JIT compiler, caches, the first
 * connections.
 */
export async function alternate<Name extends string, T>(
  contenders: Readonly<Record<Name, () => Promise<T>>>,
  rounds: number,
): Promise<Record<Name, T>[]> {
  const measured: Record<Name, T>[] = [];
  const names = Object.keys(contenders) as Name[];
  for (let round = 0; round <= rounds; round++) {
    const results: [Name, T][] = [];
    for (const name of names) results.push([name, await contenders[name]()]);
    if (round > 0) measured.push(Object.fromEntries(results) as Record<Name, T>);
  }
  return measured;
}
