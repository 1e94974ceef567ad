/**
 * Measures contenders alternately, A B A B …, so that disturbances of the machine affect all of them alike and ratios
 * can be taken for each round. Before that, each has a warm-up round that does not count, for the JIT compiler,
 * caches and first connections.
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
