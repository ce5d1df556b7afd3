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
interface Format {
  /** What is wrong with a text. */
  readonly check: (text: string) => readonly string[];
  /** The length of the pattern that it is counted by. */
  readonly length: number;
}
type Boxed = CelOpaque<Format>;

/** A prefix may end in a dash; the rest of the name will follow it. */
const masked = (text: string): string => (text.length > 1 && text.endsWith('-') ? `${text.slice(0, -2)}a` : text);
const problem = (valid: boolean, message: string): readonly string[] => (valid ? [] : [message]);

/** Go's decoder skips line ends and insists on padding. */
function isBase64(text: string): boolean {
  const bare = text.replace(/[\r\n]/g, '');
  return bare !== '' && bare.length % 4 === 0 && !/\s/.test(bare) && isReadable(decodeBase64, bare);
}

const UUID = /^[0-9a-fA-F]{8}-?(?:[0-9a-fA-F]{4}-?){3}[0-9a-fA-F]{12}$/;

const FORMATS: Readonly<Record<string, Format>> = {
  dns1123Label: { check: (text) => checkName(text, 'label'), length: 30 },
  dns1123Subdomain: { check: (text) => checkName(text, 'subdomain'), length: 60 },
  dns1035Label: { check: checkDns1035Label, length: 30 },
  qualifiedName: { check: checkQualifiedName, length: 60 },
  dns1123LabelPrefix: { check: (text) => checkName(text, 'label', { prefix: true }), length: 30 },
  dns1123SubdomainPrefix: { check: (text) => checkName(text, 'subdomain', { prefix: true }), length: 60 },
  dns1035LabelPrefix: { check: (text) => checkDns1035Label(masked(text)), length: 30 },
  labelValue: { check: checkLabelValue, length: 40 },
  uri: { check: (text) => [urlProblem(text) ?? []].flat(), length: 1103 },
  uuid: { check: (text) => problem(UUID.test(text), 'does not match the UUID format'), length: 70 },
  byte: { check: (text) => problem(isBase64(text), 'invalid base64'), length: 84 },
  date: { check: (text) => problem(isReadable(parseDate, text), 'invalid date'), length: 71 },
  datetime: { check: (text) => problem(isReadable(parseTimestamp, text), 'invalid datetime'), length: 71 },
};

const boxed = new Map(Object.entries(FORMATS).map(([name, format]) => [name, new CelOpaque(NAME, format)]));

function validate(format: Boxed, text: string): CelOptional {
  const problems = format.value.check(text);
  return problems.length === 0 ? NONE : new CelOptional([...problems]);
}

/** The longest pattern the estimator reckons with, whichever format it is. */
const LONGEST_PATTERN = 128;
const REGEX_LENGTH = 0.25;
const VALIDATE: CostModel = {
  run([format, text]) {
    // What takes the place of a format may be a failure.
    const times = format instanceof CelOpaque ? Math.ceil((format as Boxed).value.length * REGEX_LENGTH) : 1;
    return Math.ceil((1 + actualSize(text)) * TRAVERSAL) * times;
  },
  estimate: ({ sizes }) => ({
    cost: scaleRange(scaleRange(sizes[1]!, TRAVERSAL), LONGEST_PATTERN * REGEX_LENGTH),
  }),
};

export const NAMED_FORMATS: readonly Overload[] = [
  ...[...boxed].map(([name, format]) => overload(`format.${name}`, `(): ${NAME}`, () => format, ONE)),
  overload('format.named', `(string): optional(${NAME})`, (name: string) => celOptional(boxed.get(name)), ONE),
  overload('validate', `${NAME}.(string): optional(list(string))`, validate, VALIDATE),
];
