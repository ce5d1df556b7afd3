/** The name rules of the API, with the texts of apimachinery's util/validation. Each check returns messages, [] = good. */

const LABEL = '[a-z0-9]([-a-z0-9]*[a-z0-9])?';
const SUBDOMAIN = `${LABEL}(\\.${LABEL})*`;
const DNS1035 = '[a-z]([-a-z0-9]*[a-z0-9])?';
const QUALIFIED = '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]';

// The nested quantifiers of these patterns would backtrack badly on long input, so length is checked first and the
// matching is done by character class plus the ends of each part.
const LABEL_CHARS = /^[-a-z0-9]+$/;
const QUALIFIED_CHARS = /^[-A-Za-z0-9_.]+$/;
const LOWER_ALNUM = /[a-z0-9]/;
const ALNUM = /[A-Za-z0-9]/;

const endsIn = (text: string, chars: RegExp): boolean => chars.test(text[0]!) && chars.test(text[text.length - 1]!);
const matchesLabel = (text: string): boolean => LABEL_CHARS.test(text) && endsIn(text, LOWER_ALNUM);
const matchesSubdomain = (text: string): boolean => text.split('.').every(matchesLabel);
const matchesQualified = (text: string): boolean => QUALIFIED_CHARS.test(text) && endsIn(text, ALNUM);

const tooLong = (bytes: number): string => `must be no more than ${bytes} bytes`;
/** The older rules count bytes, too, and call them characters. */
const tooManyCharacters = (bytes: number): string => `must be no more than ${bytes} characters`;
const regexError = (text: string, pattern: string, ...examples: string[]): string =>
  `${text} (e.g. ${examples.map((e) => `'${e}', `).join(' or ')}regex used for validation is '${pattern}')`;

const encoder = new TextEncoder();
/** Length in UTF-8 bytes: what Go's len() counts. */
export const byteLength = (text: string): number => {
  for (let i = 0; i < text.length; i++) if (text.charCodeAt(i) > 127) return encoder.encode(text).length;
  return text.length;
};

/** What is wrong with a name of at most `most` bytes; `rule` says so when it is not good. */
function problemsOf(name: string, most: number, isGood: boolean, rule: string): string[] {
  const errors = byteLength(name) > most ? [tooManyCharacters(most)] : [];
  if (!isGood) errors.push(rule);
  return errors;
}

// Rules are spelled out once: a body may hold a hundred thousand mistakes.
const SUBDOMAIN_RULE = regexError(
  "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character",
  SUBDOMAIN,
  'example.com',
);

/** RFC 1123 subdomain, at most 253 bytes: most object names. */
export const checkSubdomain = (name: string): string[] => problemsOf(name, 253, matchesSubdomain(name), SUBDOMAIN_RULE);

const UNDERSCORED = '_?[a-z0-9]([-_a-z0-9]*[a-z0-9])?';
const UNDERSCORED_CHARS = /^_?[a-z0-9]([-_a-z0-9]*)$/;
const UNDERSCORED_RULE = regexError(
  "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character",
  `${UNDERSCORED}(\\.${UNDERSCORED})*`,
  'example.com',
);

/** A subdomain whose parts may hold underscores and begin with one: search paths of DNS. */
export function checkSubdomainWithUnderscore(name: string): string[] {
  const isPart = (part: string): boolean => UNDERSCORED_CHARS.test(part) && LOWER_ALNUM.test(part[part.length - 1]!);
  return problemsOf(name, 253, name.split('.').every(isPart), UNDERSCORED_RULE);
}

const LABEL_RULE = regexError(
  "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character",
  LABEL,
  'my-name',
  '123-abc',
);

/** RFC 1123 label, at most 63 bytes: namespaces, services. */
export function checkLabelName(name: string): string[] {
  const isGood = matchesLabel(name);
  return problemsOf(name, 63, isGood, !isGood && matchesSubdomain(name) ? 'must not contain dots' : LABEL_RULE);
}

const DNS1035_RULE = regexError(
  "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, and end with an alphanumeric character",
  DNS1035,
  'my-name',
  'abc-123',
);

/** RFC 1035 label: like an RFC 1123 label, but starting with a letter. */
export const checkDns1035Label = (name: string): string[] =>
  problemsOf(name, 63, matchesLabel(name) && /^[a-z]/.test(name), DNS1035_RULE);

/** Anything that can stand as one segment of a URL path: RBAC objects. */
export function checkPathSegment(name: string): string[] {
  if (name === '.' || name === '..') return [`may not be '${name}'`];
  return ['/', '%'].filter((c) => name.includes(c)).map((c) => `may not contain '${c}'`);
}

const QUALIFIED_RULE = regexError(
  "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character",
  QUALIFIED,
  'MyName',
  'my.name',
  '123-abc',
);
const NAME_PART_RULE = `name part ${QUALIFIED_RULE}`;
const QUALIFIED_KEY_RULE = `a valid label key ${QUALIFIED_RULE} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')`;

/** `[prefix/]name`: label and annotation keys, finalizers, conditions. */
export function checkQualifiedName(value: string): string[] {
  const slash = value.indexOf('/');
  if (slash >= 0 && value.includes('/', slash + 1)) return [QUALIFIED_KEY_RULE];
  const name = slash < 0 ? value : value.slice(slash + 1);
  const errors: string[] = [];
  if (slash === 0) errors.push('prefix part must be non-empty');
  else if (slash > 0) for (const text of checkPrefix(value.slice(0, slash))) errors.push(`prefix part ${text}`);
  if (name === '') errors.push('name part must be non-empty');
  else if (byteLength(name) > 63) errors.push(`name part ${tooLong(63)}`);
  if (!matchesQualified(name)) errors.push(NAME_PART_RULE);
  return errors;
}

const checkPrefix = (prefix: string): string[] => [
  ...(byteLength(prefix) > 253 ? [tooLong(253)] : []),
  ...(matchesSubdomain(prefix) ? [] : [SUBDOMAIN_RULE]),
];

const LABEL_VALUE_RULE = regexError(
  "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character",
  `(${QUALIFIED})?`,
  'MyValue',
  'my_value',
  '12345',
);

/** A label value: empty, or at most 63 bytes of [A-Za-z0-9._-] with alphanumeric ends. */
export function checkLabelValue(value: string): string[] {
  const errors = byteLength(value) > 63 ? [tooLong(63)] : [];
  if (value !== '' && !matchesQualified(value)) errors.push(LABEL_VALUE_RULE);
  return errors;
}

/** The name of a port: at most 15 of [-a-z0-9] with a letter in it, no hyphen at an end, no two in a row. */
export function checkPortName(name: string): string[] {
  const errors = name.length > 15 ? ['must be no more than 15 characters'] : [];
  if (!/^[-a-z0-9]+$/.test(name)) {
    errors.push('must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)');
  }
  if (!/[a-z]/.test(name)) errors.push('must contain at least one letter (a-z)');
  if (name.includes('--')) errors.push('must not contain consecutive hyphens');
  if (name.startsWith('-') || name.endsWith('-')) errors.push('must not begin or end with a hyphen');
  return errors;
}

const URL_PATH = /^[A-Za-z0-9/\-._~%!$&'()*+,;=:]+$/;

/** `example.com/some/path` (`IsDomainPrefixedPath`). */
export function checkDomainPath(text: string): string[] {
  const slash = text.indexOf('/');
  if (slash <= 0 || slash === text.length - 1) return ['must be a domain-prefixed path (such as "acme.io/foo")'];
  const errors = checkSubdomain(text.slice(0, slash));
  if (!URL_PATH.test(text.slice(slash + 1))) {
    errors.push("Invalid path (regex used for validation is '[A-Za-z0-9/\\-._~%!$&'()*+,;=:]+')");
  }
  return errors;
}

const NAME_RULES = { subdomain: checkSubdomain, label: checkLabelName, 'path-segment': checkPathSegment };
export type NameRule = keyof typeof NAME_RULES;

/**
 * Checks a name by a kind's rule. `prefix` = the text is a generateName: a trailing dash is then fine, because more
 * characters follow.
 */
export function checkName(name: string, rule: NameRule, options: { prefix?: boolean } = {}): string[] {
  const text = options.prefix && name.length > 1 && name.endsWith('-') ? `${name.slice(0, -2)}a` : name;
  return NAME_RULES[rule](text);
}
