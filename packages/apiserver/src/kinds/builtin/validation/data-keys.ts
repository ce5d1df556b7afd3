/** Keys of ConfigMaps and Secrets (validation.IsConfigMapKey). */
const KEY = /^[-._a-zA-Z0-9]+$/;
const KEY_RULE =
  "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  or 'KEY_NAME',  or 'key-name', regex used for validation is '[-._a-zA-Z0-9]+')";
const LONGEST = 253;
const NONE: readonly string[] = Object.freeze([]);

/** What is wrong with a key. */
export function checkDataKey(key: string): readonly string[] {
  if (key.length <= LONGEST && KEY.test(key) && !key.startsWith('.')) return NONE;
  const errors: string[] = [];
  if (key.length > LONGEST) errors.push(`must be no more than ${LONGEST} characters`);
  if (!KEY.test(key)) errors.push(KEY_RULE);
  if (key === '.') errors.push("must not be '.'");
  else if (key === '..') errors.push("must not be '..'");
  else if (key.startsWith('..')) errors.push("must not start with '..'");
  return errors;
}
