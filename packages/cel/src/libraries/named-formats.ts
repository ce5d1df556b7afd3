/** `format.dns1123Label().validate(text)`: none when the text fits, else what is wrong with it. */
import { decodeBase64 } from '@coracle/apimachinery/meta/base64';
import {
  checkDns1035Label,
  checkLabelValue,
  checkName,
  checkQualifiedName,
} from '@coracle/apimachinery/meta/name-rules';
import { actualSize, type CostModel, ONE, scaleRange, TRAVERSAL } from '../cost-models.ts';
import { type Overload, overload } from '../declarations.ts';
import { isReadable } from '../errors.ts';
import { parseDate, parseTimestamp } from '../time.ts';
import { CelOpaque, CelOptional, celOptional, NONE } from '../values.ts';
import { urlProblem } from './url.ts';

const NAME = 'kubernetes.NamedFormat';
type Check = (text: string) => readonly string[];
type Boxed = CelOpaque<Check>;

/** A prefix may end in a dash; the rest of the name will follow it. */
const masked = (text: string): string => (text.length > 1 && text.endsWith('-') ? `${text.slice(0, -2)}a` : text);
const problem = (valid: boolean, message: string): readonly string[] => (valid ? [] : [message]);

/** Go's decoder skips line ends and insists on padding. */
function isBase64(text: string): boolean {
  const bare = text.replace(/[\r\n]/g, '');
  return bare !== '' && bare.length % 4 === 0 && !/\s/.test(bare) && isReadable(decodeBase64, bare);
}

const FORMATS: Readonly<Record<string, Check>> = {
  dns1123Label: (text) => checkName(text, 'label'),
  dns1123Subdomain: (text) => checkName(text, 'subdomain'),
  dns1035Label: checkDns1035Label,
  qualifiedName: checkQualifiedName,
  dns1123LabelPrefix: (text) => checkName(text, 'label', { prefix: true }),
  dns1123SubdomainPrefix: (text) => checkName(text, 'subdomain', { prefix: true }),
  dns1035LabelPrefix: (text) => checkDns1035Label(masked(text)),
  labelValue: checkLabelValue,
  uri: (text) => [urlProblem(text) ?? []].flat(),
  uuid: (text) =>
    problem(/^[0-9a-fA-F]{8}-?(?:[0-9a-fA-F]{4}-?){3}[0-9a-fA-F]{12}$/.test(text), 'does not match the UUID format'),
  byte: (text) => problem(isBase64(text), 'invalid base64'),
  date: (text) => problem(isReadable(parseDate, text), 'invalid date'),
  datetime: (text) => problem(isReadable(parseTimestamp, text), 'invalid datetime'),
};

const boxed = new Map(Object.entries(FORMATS).map(([name, check]) => [name, new CelOpaque(NAME, check)]));

function validate(format: Boxed, text: string): CelOptional {
  const problems = format.value(text);
  return problems.length === 0 ? NONE : new CelOptional([...problems]);
}

/** The length of the pattern that a format is counted by. */
const PATTERN_LENGTHS: Readonly<Record<string, number>> = {
  dns1123Subdomain: 60,
  dns1123SubdomainPrefix: 60,
  qualifiedName: 60,
  labelValue: 40,
  uri: 1103,
  uuid: 70,
  byte: 84,
  date: 71,
  datetime: 71,
};
const COMMON_LENGTH = 30;
/** The longest pattern the estimator reckons with, whichever format it is. */
const LONGEST_PATTERN = 128;
const REGEX_LENGTH = 0.25;
const costOf = new Map(
  [...boxed].map(([name, format]) => [format, Math.ceil((PATTERN_LENGTHS[name] ?? COMMON_LENGTH) * REGEX_LENGTH)]),
);
const VALIDATE: CostModel = {
  run: ([format, text]) => Math.ceil((1 + actualSize(text)) * TRAVERSAL) * (costOf.get(format as Boxed) ?? 1),
  estimate: ({ sizes }) => ({
    cost: scaleRange(scaleRange(sizes[1]!, TRAVERSAL), LONGEST_PATTERN * REGEX_LENGTH),
  }),
};

export const NAMED_FORMATS: readonly Overload[] = [
  ...[...boxed].map(([name, format]) => overload(`format.${name}`, `(): ${NAME}`, () => format, ONE)),
  overload('format.named', `(string): optional(${NAME})`, (name: string) => celOptional(boxed.get(name)), ONE),
  overload('validate', `${NAME}.(string): optional(list(string))`, validate, VALIDATE),
];
