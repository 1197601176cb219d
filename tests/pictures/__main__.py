"""``python -m tests.pictures``: redraw every picture."""

from tests.pictures.gallery import FOLDER, pictures

if __name__ == '__main__':
    FOLDER.mkdir(exist_ok=True)
    for name, svg in pictures().items():
        (FOLDER / f'{name}.svg').write_text(svg, encoding='utf-8')
