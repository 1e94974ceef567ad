/** Gives each parameter of an operation the name of an argument. */
export class ArgumentNames {
  readonly #taken: Set<string>;

  constructor(reserved: readonly string[]) {
    this.#taken = new Set(reserved);
  }

  /** The parameter's own name; `<name>_<in>` where one before has it, with a number where that is taken as well. */
  take(name: string, place: string): string {
    let argument = this.#taken.has(name) ? `${name}_${place}` : name;
    for (let number = 2; this.#taken.has(argument); number++) argument = `${name}_${place}_${number}`;
    this.#taken.add(argument);
    return argument;
  }
}
