import { BarChart, LineChart } from 'echarts/charts';
import { GridComponent, TooltipComponent } from 'echarts/components';
import { type EChartsCoreOption, init, use } from 'echarts/core';
import { CanvasRenderer } from 'echarts/renderers';
import { LOCALE } from '../../format/locale.ts';
import { formatNumber, formatShort } from '../../format/numbers.ts';
import { classes } from '../layout/classes.ts';
import { bucketName } from './bucket-name.ts';
import styles from './chart.module.css';
import type { ChartData, ChartSeries, SeriesTone } from './chart-data.ts';

use([BarChart, LineChart, GridComponent, TooltipComponent, CanvasRenderer]);

export interface ChartCanvas {
  readonly draw: (data: ChartData) => void;
  readonly dispose: () => void;
}

/** Draws charts into `element`, in the colours of the stylesheet. A click on a bucket is passed to `onSelect`. Redraws when the size, the colour scheme or the contrast changes. */
export function createChartCanvas(element: HTMLElement, onSelect: (index: number) => void): ChartCanvas {
  const chart = init(element, null, { renderer: 'canvas' });
  chart.getZr().on('click', ({ offsetX, offsetY }) => {
    if (!chart.containPixel('grid', [offsetX, offsetY])) return;
    const [index] = chart.convertFromPixel({ seriesIndex: 0 }, [offsetX, offsetY]) ?? [];
    if (index !== undefined) onSelect(index);
  });
  let drawn: ChartData | undefined;
  const draw = (data: ChartData) => {
    drawn = data;
    chart.setOption(optionsOf(data, element), { notMerge: true });
  };
  const redraw = () => {
    if (drawn !== undefined) draw(drawn);
  };
  const size = new ResizeObserver(() => chart.resize());
  size.observe(element);
  const theme = new MutationObserver(redraw);
  theme.observe(document.documentElement, { attributeFilter: ['data-theme'] });
  const looks = ['(prefers-color-scheme: dark)', '(forced-colors: active)'].map((query) => matchMedia(query));
  for (const look of looks) look.addEventListener('change', redraw);
  return {
    draw,
    dispose: () => {
      size.disconnect();
      theme.disconnect();
      for (const look of looks) look.removeEventListener('change', redraw);
      chart.dispose();
    },
  };
}

const COLOURS: Readonly<Record<SeriesTone, string>> = {
  allowed: '--allowed-fill',
  limited: '--limited-fill',
  failed: '--failed-fill',
  before: '--text-faint',
};

function optionsOf(data: ChartData, element: HTMLElement): EChartsCoreOption {
  const colour = colourReader(element);
  const text = {
    color: colour('--text-faint'),
    fontSize: 11,
    fontFamily: getComputedStyle(element).fontFamily,
  };
  return {
    animation: false,
    grid: { left: 0, right: 8, top: 12, bottom: 0, outerBoundsMode: 'same', outerBoundsContain: 'axisLabel' },
    xAxis: {
      type: 'category',
      data: data.starts,
      axisTick: { show: false },
      axisLine: { lineStyle: { color: colour('--line-strong') } },
      axisLabel: {
        ...text,
        hideOverlap: true,
        formatter: (start: string) => axisLabel(Number(start), data),
      },
    },
    yAxis: {
      type: 'value',
      minInterval: 1,
      splitNumber: 4,
      splitLine: { lineStyle: { color: colour('--line') } },
      axisLabel: { ...text, formatter: formatShort },
    },
    tooltip: {
      trigger: 'axis',
      axisPointer: { type: 'shadow', shadowStyle: { color: colour('--text-faint'), opacity: 0.12 } },
      confine: true,
      // A class of ours styles the tooltip. It is built from nodes, so that text is not parsed as HTML and no style attribute is needed.
      backgroundColor: 'transparent',
      borderWidth: 0,
      padding: 0,
      extraCssText: 'box-shadow: none',
      transitionDuration: 0,
      formatter: (points: readonly { readonly dataIndex: number }[]) =>
        tooltipOf(data, points[0]?.dataIndex ?? 0),
    },
    series: data.series.map((series) => seriesOption(series, data, colour)),
  };
}

type ColourReader = (property: string) => string;

function seriesOption({ name, tone, values }: ChartSeries, data: ChartData, colour: ColourReader) {
  const color = colour(COLOURS[tone]);
  if (tone === 'before')
    return {
      type: 'line',
      name,
      data: values,
      symbol: 'none',
      silent: true,
      lineStyle: { color, width: 1.5, type: 'dashed' },
    };
  return {
    type: 'bar',
    name,
    stack: 'outcomes',
    data: values.map((value, index) => {
      const mark = index === data.marked && { borderColor: colour('--text'), borderWidth: 1.5 };
      const light = !isComplete(data, index) && { opacity: INCOMPLETE_OPACITY };
      return mark || light ? { value, itemStyle: { ...mark, ...light } } : value;
    }),
    barMaxWidth: 28,
    barCategoryGap: '25%',
    itemStyle: { color },
    emphasis: { disabled: true },
  };
}

const INCOMPLETE_OPACITY = 0.45;

/** Whether the counts of a bucket are final. */
function isComplete({ starts, completeUntil }: ChartData, index: number): boolean {
  if (completeUntil === undefined) return true;
  return (starts[index + 1] ?? Number.POSITIVE_INFINITY) <= completeUntil;
}

function tooltipOf({ starts, series, labels, timeZone }: ChartData, index: number): HTMLElement {
  const box = document.createElement('div');
  box.className = styles.tooltip ?? '';
  box.append(textElement('div', bucketName(starts[index] ?? 0, labels, timeZone), styles.tooltipTitle));
  for (const { name, tone, values } of series) {
    const row = document.createElement('div');
    row.className = styles.tooltipRow ?? '';
    const value = values[index];
    row.append(
      textElement('span', '', classes(styles.swatch, styles[tone])),
      textElement('span', name),
      textElement('span', value == null ? '–' : formatNumber(value)),
    );
    box.append(row);
  }
  return box;
}

function textElement(tag: string, text: string, className = ''): HTMLElement {
  const element = document.createElement(tag);
  element.className = className;
  element.textContent = text;
  return element;
}

const AXIS_FORMATS = {
  time: { hour: 'numeric' },
  date: { day: 'numeric', month: 'short' },
} as const;

function axisLabel(start: number, { labels, timeZone }: ChartData): string {
  const format = { ...AXIS_FORMATS[labels], ...(timeZone !== undefined && { timeZone }) };
  return new Intl.DateTimeFormat(LOCALE, format).format(start);
}

/** Reads custom properties as computed colours: a canvas does not understand `light-dark()`. */
function colourReader(element: HTMLElement): ColourReader {
  return (property) => {
    const probe = document.createElement('span');
    probe.style.color = `var(${property})`;
    // High contrast of the system has one colour for all: those of the outcomes stay.
    if (property.endsWith('-fill')) probe.style.forcedColorAdjust = 'none';
    element.append(probe);
    const { color } = getComputedStyle(probe);
    probe.remove();
    return color;
  };
}
