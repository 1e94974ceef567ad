/** Ends with the work. @returns the highest value that `count` grew by in one turn of the event loop */
export async function mostPerTurn(work: Promise<unknown>, count: () => number): Promise<number> {
  let isDone = false;
  void work.then(() => {
    isDone = true;
  });
  let most = 0;
  for (let before = count(); !isDone; before = count()) {
    await new Promise((resolve) => setImmediate(resolve));
    most = Math.max(most, count() - before);
  }
  return most;
}
