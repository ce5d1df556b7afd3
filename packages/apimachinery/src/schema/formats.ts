/**
 * String formats that apiserver enforces on custom resources (kube-openapi's strfmt with the apiextensions list). A
 * format that is not here is no check at all.
 */
import { isBase64 } from '../meta/base64.ts';
import { parseAddress } from '../meta/ip-address.ts';
import { checkLabelName, checkSubdomain } from '../meta/name-rules.ts';

type FormatCheck = (text: string) => boolean;

const UUID = (version: string, variant: string): RegExp =>
  new RegExp(`^[0-9a-f]{8}-?[0-9a-f]{4}-?${version}[0-9a-f]{3}-?${variant}[0-9a-f]{3}-?[0-9a-f]{12}$`, 'i');
const matches =
  (expression: RegExp): FormatCheck =>
  (text) =>
    expression.test(text);

const isCidr: FormatCheck = (text) => {
  const [, address = '', bits] = /^([^/]+)\/(0|[1-9][0-9]{0,2})$/.exec(text) ?? [];
  const family = parseAddress(address)?.family;
  return family !== undefined && Number(bits) <= (family === 4 ? 32 : 128);
};

const DAYS = [31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
const isDate: FormatCheck = (text) => {
  const match = /^([0-9]{4})-([0-9]{2})-([0-9]{2})$/.exec(text);
  if (match === null) return false;
  const [year, month, day] = [Number(match[1]), Number(match[2]), Number(match[3])];
  const leap = month === 2 && year % 4 === 0 && (year % 100 !== 0 || year % 400 === 0) ? 1 : 0;
  return month >= 1 && month <= 12 && day >= 1 && day <= DAYS[month - 1]! + leap;
};

/** Last of its kind that was found right: objects of one second carry the same time, each of them more than once. */
let lastDateTime: string | undefined;
const isDateTime: FormatCheck = (text) => {
  const isOne = text === lastDateTime || readsAsDateTime(text);
  if (isOne) lastDateTime = text;
  return isOne;
};

const readsAsDateTime: FormatCheck = (text) => {
  const match =
    /^([0-9]{4}-[0-9]{2}-[0-9]{2})[Tt]([0-9]{2}):([0-9]{2}):([0-9]{2})(?:\.[0-9]+)?(?:[Zz]|[+-]([0-9]{2}):([0-9]{2}))$/.exec(
      text,
    );
  if (match === null || !isDate(match[1]!)) return false;
  return Number(match[2]) < 24 && Number(match[3]) < 60 && Number(match[4]) < 61 && Number(match[5] ?? 0) < 24;
};

const isDuration: FormatCheck = (text) =>
  /^[-+]?(0|([0-9]+(\.[0-9]*)?|\.[0-9]+)(ns|us|[\u00b5\u03bc]s|ms|s|m|h)(([0-9]+(\.[0-9]*)?|\.[0-9]+)(ns|us|[\u00b5\u03bc]s|ms|s|m|h))*)$/.test(
    text,
  ) || /^[0-9]+ ?(ns|us|\u00b5s|ms|s|sec|m|min|h|hr|hour|d|day|w|wk|week)s?$/.test(text);

const isUri: FormatCheck = (text) => /^([a-zA-Z][a-zA-Z0-9+.-]*:|\/)/.test(text) && !/[\s\p{Cc}]/u.test(text);

const isHostname: FormatCheck = (text) => {
  if (text.length > 255) return false;
  return text.split('.').every((part) => /^[a-zA-Z0-9\p{S}\p{L}-]{1,63}$/u.test(part) && !/^-|-$/.test(part));
};

const isEmail: FormatCheck = (text) => /^([^<>@\s]+@[^<>@\s]+|[^<>@]*<[^<>@\s]+@[^<>@\s]+>)$/.test(text);

/** Whether the digits of a text, each times its weight, sum up to a multiple of `by`. */
const sumsUp = (digits: string, by: number, weighted: (digit: number, at: number) => number): boolean =>
  [...digits].reduce((sum, digit, at) => sum + weighted(digit === 'X' ? 10 : Number(digit), at), 0) % by === 0;

const isIsbn10: FormatCheck = (text) => {
  const digits = text.replace(/[- ]/g, '');
  return /^[0-9]{9}[0-9X]$/.test(digits) && sumsUp(digits, 11, (digit, at) => (10 - at) * digit);
};
const isIsbn13: FormatCheck = (text) => {
  const digits = text.replace(/[- ]/g, '');
  return /^[0-9]{13}$/.test(digits) && sumsUp(digits, 10, (digit, at) => digit * (at % 2 === 0 ? 1 : 3));
};
const isCreditCard: FormatCheck = (text) => {
  const digits = text.replace(/[^0-9]/g, '');
  if (digits.length < 12 || digits.length > 19) return false;
  // Every second digit counts twice, from the right; of what has two digits then their sum counts.
  const isDoubled = (at: number): boolean => (digits.length - at) % 2 === 0;
  return sumsUp(digits, 10, (digit, at) => (isDoubled(at) ? digit * 2 - (digit > 4 ? 9 : 0) : digit));
};

const CHECKS: Readonly<Record<string, FormatCheck>> = {
  bsonobjectid: matches(/^[0-9a-fA-F]{24}$/),
  uri: isUri,
  email: isEmail,
  hostname: isHostname,
  ipv4: (text) => parseAddress(text)?.family === 4,
  ipv6: (text) => parseAddress(text)?.family === 6,
  cidr: isCidr,
  mac: matches(
    /^([0-9a-fA-F]{2}([:-][0-9a-fA-F]{2}){5}([:-][0-9a-fA-F]{2}){0,2}|[0-9a-fA-F]{4}(\.[0-9a-fA-F]{4}){2,3})$/,
  ),
  uuid: matches(UUID('[0-9a-f]', '[0-9a-f]')),
  uuid3: matches(UUID('3', '[0-9a-f]')),
  uuid4: matches(UUID('4', '[89ab]')),
  uuid5: matches(UUID('5', '[89ab]')),
  isbn: (text) => isIsbn10(text) || isIsbn13(text),
  isbn10: isIsbn10,
  isbn13: isIsbn13,
  creditcard: isCreditCard,
  ssn: matches(/^[0-9]{3}[- ]?[0-9]{2}[- ]?[0-9]{4}$/),
  hexcolor: matches(/^#?([0-9a-fA-F]{3}|[0-9a-fA-F]{6})$/),
  rgbcolor: matches(
    /^rgb\(\s*([01]?[0-9]{1,2}|2[0-4][0-9]|25[0-5])\s*(,\s*([01]?[0-9]{1,2}|2[0-4][0-9]|25[0-5])\s*){2}\)$/,
  ),
  byte: isBase64,
  password: () => true,
  date: isDate,
  datetime: isDateTime,
  duration: isDuration,
  k8sshortname: (text) => checkLabelName(text).length === 0,
  k8slongname: (text) => checkSubdomain(text).length === 0,
};

/** The check of a string format, undefined when the format is not one that is enforced. Dashes in the name are ignored. */
export function formatCheck(format: string): FormatCheck | undefined {
  const name = format.replaceAll('-', '');
  return Object.hasOwn(CHECKS, name) ? CHECKS[name] : undefined;
}

/** True for a format that is looked at in values of a type ('' = none given, or more than one); all others say nothing. */
export function isCheckedFormat(type: string, format: string): boolean {
  switch (type) {
    case '':
    case 'string':
      return formatCheck(format) !== undefined;
    case 'integer':
      return format === 'int32' || format === 'int64';
    case 'number':
      return format === 'float' || format === 'double';
    default:
      return false;
  }
}
