/** Gives documents their keys, each of which is greater than all before and never used again. */
export interface DocumentKeys {
  next(): Promise<number>;
}
