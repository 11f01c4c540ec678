-- The shop on 1 January 2026. Money is in cents; ids above 100 are what the desk books.
BEGIN;

CREATE TABLE customers (
  id INTEGER PRIMARY KEY,
  name TEXT NOT NULL,
  email TEXT NOT NULL UNIQUE
);
CREATE TABLE orders (
  id TEXT PRIMARY KEY,
  customer_id INTEGER NOT NULL REFERENCES customers,
  status TEXT NOT NULL CHECK (status IN ('in transit', 'delivered', 'lost')),
  placed_on TEXT NOT NULL,
  delivered_on TEXT
);
CREATE TABLE items (
  order_id TEXT NOT NULL REFERENCES orders,
  line INTEGER NOT NULL,
  title TEXT NOT NULL,
  quantity INTEGER NOT NULL,
  unit_cents INTEGER NOT NULL,
  PRIMARY KEY (order_id, line)
);
CREATE TABLE refunds (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  order_id TEXT NOT NULL REFERENCES orders,
  line INTEGER NOT NULL,
  cents INTEGER NOT NULL CHECK (cents > 0),
  reason TEXT,
  made_on TEXT NOT NULL
);
CREATE TABLE ledger (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  order_id TEXT NOT NULL REFERENCES orders,
  entry TEXT NOT NULL CHECK (entry IN ('sale', 'refund')),
  cents INTEGER NOT NULL,
  made_on TEXT NOT NULL
);
CREATE TABLE outbox (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  recipient TEXT NOT NULL,
  template TEXT NOT NULL,
  order_id TEXT NOT NULL REFERENCES orders,
  made_on TEXT NOT NULL,
  UNIQUE (order_id, template)
);
CREATE TABLE escalations (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  order_id TEXT NOT NULL REFERENCES orders,
  queue TEXT NOT NULL,
  made_on TEXT NOT NULL,
  UNIQUE (order_id, queue)
);

INSERT INTO customers VALUES
  (1, 'Ada Lind', 'ada@example.org'),
  (2, 'Bo Akande', 'bo@example.org'),
  (3, 'Chen Wei', 'chen@example.org'),
  (4, 'Dora Silva', 'dora@example.org'),
  (5, 'Emil Novak', 'emil@example.org'),
  (6, 'Farah Haddad', 'farah@example.org');

INSERT INTO orders VALUES
  ('R-1001', 1, 'delivered', '2025-12-12', '2025-12-15'),
  ('R-1002', 1, 'delivered', '2025-12-16', '2025-12-19'),
  ('R-1003', 2, 'delivered', '2025-12-09', '2025-12-12'),
  ('R-1004', 2, 'delivered', '2025-12-17', '2025-12-22'),
  ('R-1005', 2, 'lost',      '2025-12-01', NULL),
  ('R-1006', 3, 'delivered', '2025-12-18', '2025-12-20'),
  ('R-1007', 3, 'delivered', '2025-12-19', '2025-12-23'),
  ('R-1008', 3, 'delivered', '2025-12-20', '2025-12-23'),
  ('R-1009', 4, 'delivered', '2025-12-08', '2025-12-11'),
  ('R-1010', 4, 'delivered', '2025-10-30', '2025-11-03'),
  ('R-1011', 4, 'delivered', '2025-11-02', '2025-11-06'),
  ('R-1012', 5, 'delivered', '2025-12-14', '2025-12-17'),
  ('R-1013', 5, 'delivered', '2025-12-15', '2025-12-18'),
  ('R-1014', 5, 'delivered', '2025-12-19', '2025-12-22'),
  ('R-1015', 5, 'in transit', '2025-12-29', NULL),
  ('R-1016', 6, 'delivered', '2025-12-21', '2025-12-24'),
  ('R-1017', 6, 'delivered', '2025-12-22', '2025-12-27');

INSERT INTO items VALUES
  ('R-1001', 1, 'Teapot, blue', 1, 4500),
  ('R-1002', 1, 'Wool blanket', 1, 7990),
  ('R-1002', 2, 'Pillow case', 2, 1250),
  ('R-1003', 1, 'Desk lamp', 1, 3895),
  ('R-1003', 2, 'Light bulb', 3, 450),
  ('R-1004', 1, 'Rain coat', 1, 8900),
  ('R-1005', 1, 'Chess set', 1, 5400),
  ('R-1006', 1, 'Running shoes', 1, 11900),
  ('R-1006', 2, 'Laces', 1, 350),
  ('R-1007', 1, 'Plate', 6, 900),
  ('R-1007', 2, 'Bowl', 4, 750),
  ('R-1007', 3, 'Serving dish', 1, 2900),
  ('R-1008', 1, 'Bread knife', 1, 3300),
  ('R-1008', 2, 'Cutting board', 1, 2650),
  ('R-1009', 1, 'Vase', 1, 6200),
  ('R-1010', 1, 'Backpack', 1, 9500),
  ('R-1011', 1, 'Headphones', 1, 12900),
  ('R-1012', 1, 'Cookbook', 1, 2800),
  ('R-1013', 1, 'Kettle', 1, 4990),
  ('R-1013', 2, 'Toaster', 1, 3890),
  ('R-1014', 1, 'Armchair', 1, 38900),
  ('R-1015', 1, 'Fountain pen', 1, 5900),
  ('R-1016', 1, 'Board game', 1, 4400),
  ('R-1017', 1, 'Tripod', 1, 7400),
  ('R-1017', 2, 'Camera bag', 1, 5600);

INSERT INTO ledger (order_id, entry, cents, made_on)
  SELECT order_id, 'sale', sum(quantity * unit_cents), placed_on
  FROM items JOIN orders ON orders.id = order_id GROUP BY order_id ORDER BY order_id;

-- What was paid back before: all of R-1012, and the kettle of R-1013.
INSERT INTO refunds (order_id, line, cents, reason, made_on) VALUES
  ('R-1012', 1, 2800, 'damaged', '2025-12-20'),
  ('R-1013', 1, 4990, 'damaged', '2025-12-21');
INSERT INTO ledger (order_id, entry, cents, made_on)
  SELECT order_id, 'refund', -cents, made_on FROM refunds ORDER BY id;

UPDATE sqlite_sequence SET seq = 100 WHERE name IN ('refunds', 'ledger');
INSERT INTO sqlite_sequence (name, seq) VALUES ('outbox', 100), ('escalations', 100);

COMMIT;
