/** Assigns an argument name to each parameter of an operation. */
export class ArgumentNames {
  readonly #taken: Set<string>;

  constructor(reserved: readonly string[]) {
    this.#taken = new Set(reserved);
  }

  /** The parameter's own name; `<name>_<in>` if that is taken, then with a number if that is taken too. */
  take(name: string, place: string): string {
    let argument = this.#taken.has(name) ? `${name}_${place}` : name;
    for (let number = 2; this.#taken.has(argument); number++) argument = `${name}_${place}_${number}`;
    this.#taken.add(argument);
    return argument;
  }
}
