/** Red, green and blue, each from 0 to 255. */
type Rgb = readonly [red: number, green: number, blue: number];

const BLACK: Rgb = [0, 0, 0];
const WHITE: Rgb = [255, 255, 255];
/** The surfaces of the page that text of the accent colour stands on: those of least contrast, as in `tokens.css`. */
const DARKEST_LIGHT: Rgb = [241, 242, 245];
const LIGHTEST_DARK: Rgb = [28, 31, 37];
/** WCAG 2.2, 1.4.3. */
const LEAST_CONTRAST = 4.5;
const STEP = 0.05;

/**
 * The accent colours of the portal for a colour like `#4f46e5`: the colour itself where it fills buttons, with black or white text, and a
 * darker or lighter one where it would be hard to read as text.
 */
export function brandStyles(color: string): string {
  const brand = rgbOf(color);
  const isTextWhite = contrast(brand, WHITE) >= contrast(brand, BLACK);
  const properties = {
    accent: `light-dark(${hex(readable(brand, DARKEST_LIGHT, BLACK))}, ${hex(readable(brand, LIGHTEST_DARK, WHITE))})`,
    'accent-fill': color,
    // Away from the text's colour, so that the text stays as readable.
    'accent-fill-hover': hex(mixed(brand, isTextWhite ? BLACK : WHITE, 2 * STEP)),
    'on-accent': hex(isTextWhite ? WHITE : BLACK),
  };
  const lines = Object.entries(properties).map(([name, value]) => `  --${name}: ${value};\n`);
  return `:root:root {\n${lines.join('')}}\n`;
}

/** The colour, as much nearer to `end` as it takes to be read on `surface`. */
function readable(color: Rgb, surface: Rgb, end: Rgb): Rgb {
  for (let share = 0; share < 1; share += STEP) {
    const candidate = mixed(color, end, share);
    if (contrast(candidate, surface) >= LEAST_CONTRAST) return candidate;
  }
  return end;
}

function mixed(color: Rgb, end: Rgb, share: number): Rgb {
  const [red, green, blue] = color.map((value, index) => value + ((end[index] ?? 0) - value) * share);
  return [Math.round(red ?? 0), Math.round(green ?? 0), Math.round(blue ?? 0)];
}

/** WCAG's contrast ratio: 1 to 21. */
function contrast(one: Rgb, other: Rgb): number {
  const [lighter = 0, darker = 0] = [luminance(one), luminance(other)].toSorted((a, b) => b - a);
  return (lighter + 0.05) / (darker + 0.05);
}

function luminance(color: Rgb): number {
  const [red = 0, green = 0, blue = 0] = color.map((value) => {
    const part = value / 255;
    return part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
}

function rgbOf(color: string): Rgb {
  const value = Number.parseInt(color.slice(1), 16);
  return [value >> 16, (value >> 8) & 255, value & 255];
}

function hex(color: Rgb): string {
  return `#${color.map((value) => value.toString(16).padStart(2, '0')).join('')}`;
}
