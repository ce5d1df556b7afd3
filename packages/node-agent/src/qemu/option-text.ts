/** QEMU's classic option syntax (`a=1,b=2`), for the options that have no JSON form. */

/** One value, with the commas of its text doubled as QEMU's parser wants them. */
export const escapeOption = (value: string): string => value.replaceAll(',', ',,');

/** `name=value,...`; names are ours, values may be anyone's. */
export const optionText = (fields: readonly (readonly [name: string, value: string])[]): string =>
  fields.map(([name, value]) => `${name}=${escapeOption(value)}`).join(',');

/** Parses option text back as QEMU does: the oracle of the tests. */
export function parseOptionText(text: string): [string, string][] {
  const fields: [string, string][] = [];
  let at = 0;
  while (at < text.length) {
    const equals = text.indexOf('=', at);
    const name = text.slice(at, equals);
    let value = '';
    at = equals + 1;
    while (at < text.length) {
      if (text[at] === ',') {
        if (text[at + 1] !== ',') break;
        at++;
      }
      value += text[at++];
    }
    at++;
    fields.push([name, value]);
  }
  return fields;
}
