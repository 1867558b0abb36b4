/** Whether a `Connection` header (undefined = none) has an option. `option` is in lower case. */
export function hasOption(connection: string | undefined, option: string): boolean {
  if (connection === undefined) return false;
  if (connection === option) return true;
  const options = connection.toLowerCase();
  return options.includes(',')
    ? options.split(',').some((each) => each.trim() === option)
    : options.trim() === option;
}
