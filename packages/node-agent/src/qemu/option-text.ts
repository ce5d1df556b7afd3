/** QEMU's classic option syntax (`a=1,b=2`), for the options that have no JSON form. */

/** One value, with the commas of its text doubled as QEMU's parser wants them. */
export const escapeOption = (value: string): string => value.replaceAll(',', ',,');

/** `name=value,...`; names are ours, values may be anyone's. */
export const optionText = (fields: readonly (readonly [name: string, value: string])[]): string =>
  fields.map(([name, value]) => `${name}=${escapeOption(value)}`).join(',');
